package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// UseBackupCode marks an unused backup code as used, and reports whether there was one and how many are left.
func UseBackupCode(app core.App, userID, codeHash string, now time.Time) (used bool, left int, err error) {
	n, err := change(app, "use backup code", `UPDATE backup_codes SET used_at = {:now} WHERE user = {:user} AND code_hash = {:hash} AND used_at = ''`,
		dbx.Params{"now": Instant(now), "user": userID, "hash": codeHash})
	if err != nil || n == 0 {
		return false, 0, err
	}
	left, err = BackupCodesLeft(app, userID)
	return true, left, err
}

// ReplaceBackupCodes makes the hashed codes the only ones of the user; none when there are no hashes.
func ReplaceBackupCodes(tx core.App, userID string, codeHashes []string, now time.Time) error {
	if _, err := tx.NonconcurrentDB().Delete(BackupCodes, dbx.HashExp{"user": userID}).Execute(); err != nil {
		return fmt.Errorf("remove backup codes: %w", err)
	}
	for _, hash := range codeHashes {
		_, err := tx.NonconcurrentDB().Insert(BackupCodes, dbx.Params{
			"id": core.GenerateDefaultRandomId(), "user": userID, "code_hash": hash,
			"created_at": Instant(now),
		}).Execute()
		if err != nil {
			return fmt.Errorf("store backup code: %w", err)
		}
	}
	return nil
}

// BackupCodesLeft counts the unused codes of a user.
func BackupCodesLeft(app core.App, userID string) (int, error) {
	return queryValue[int](app, "count backup codes", `SELECT COUNT(*) FROM backup_codes WHERE user = {:user} AND used_at = ''`,
		dbx.Params{"user": userID})
}
