// Package check reads each file of deploy/ with the parser of the tool that it is for, in its tests, and holds nothing else.
// It is a module of its own: the product needs none of those parsers. Tools that come as programs are used when they are on
// the path; `make drills` puts them there.
package check
