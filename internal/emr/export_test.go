package emr

// CachedSearches is how many look-ups a client remembers.
func CachedSearches(c *Client) int { return len(c.searches.entries) }
