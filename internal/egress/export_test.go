package egress

import "net/http"

// PublicClient returns the client for public hosts, without the check of the URL.
func (c *Client) PublicClient() *http.Client { return c.publicClient }
