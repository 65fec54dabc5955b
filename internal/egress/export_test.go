package egress

import "net/http"

// Outside is what sends requests to the public, without the check of the address as it is written.
func (c *Client) Outside() *http.Client { return c.outside }
