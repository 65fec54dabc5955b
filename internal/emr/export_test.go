package emr

// RememberedLooks is how many look-ups a client remembers.
func RememberedLooks(c *Client) int { return len(c.looks.last) }
