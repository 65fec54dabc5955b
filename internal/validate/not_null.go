package validate

// NotNull rejects null in a member that may be absent. Source: docs/decisions/conventions.md, "Null in requests".
func NotNull[T any](c *Checks, name string, f Field[T]) {
	if f.null {
		c.Reject(name, msgNull)
	}
}
