package sqlite

import "sync"

// commitGuards has, by the path of a database, the function that every commit calls first.
var commitGuards sync.Map // of func() bool

// GuardCommits rolls back every commit of the database at a path, by any statement of this process, while mayCommit is false. Call it before the
// first connection. See [IsRefusedCommit].
func GuardCommits(path string, mayCommit func() bool) { commitGuards.Store(path, mayCommit) }

func commitGuard(path string) (mayCommit func() bool, guarded bool) {
	guard, guarded := commitGuards.Load(path)
	if !guarded {
		return nil, false
	}
	return guard.(func() bool), true
}

// commitHookCode is SQLITE_CONSTRAINT_COMMITHOOK, the extended code of a commit that a hook rolled back.
const commitHookCode = 531

// IsRefusedCommit reports whether a commit was rolled back because of [GuardCommits].
func IsRefusedCommit(err error) bool { return extendedCode(err) == commitHookCode }
