package emr

// KeptLooks is how many look-ups a client remembers.
func KeptLooks(c *Client) int { return len(c.looks.last) }
