package emr

// CachedSearches returns the number of entries in a client's search cache.
func CachedSearches(c *Client) int { return len(c.searches.entries) }
