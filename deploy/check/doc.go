// Package check tests each file of deploy/ with the parser of its own tool, and contains only tests. It is a separate module, because the product
// needs none of those parsers. Tools that are programs are used when they are in the path; `make drills` puts them there.
package check
