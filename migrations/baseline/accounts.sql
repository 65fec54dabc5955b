DROP TABLE `_superusers`;

CREATE TABLE `_superusers` (
  `created` TEXT DEFAULT '' NOT NULL,
  `email` TEXT DEFAULT '' NOT NULL,
  `emailVisibility` BOOLEAN DEFAULT FALSE NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `password` TEXT DEFAULT '' NOT NULL,
  `tokenKey` TEXT DEFAULT '' NOT NULL,
  `updated` TEXT DEFAULT '' NOT NULL,
  `verified` BOOLEAN DEFAULT FALSE NOT NULL,
  "two_factor_enabled" BOOLEAN DEFAULT FALSE NOT NULL,
  "totp_secret" TEXT DEFAULT '' NOT NULL,
  "totp_last_step" NUMERIC DEFAULT 0 NOT NULL
);

DROP TABLE `users`;

CREATE TABLE `users` (
  `email` TEXT DEFAULT '' NOT NULL,
  `emailVisibility` BOOLEAN DEFAULT FALSE NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `password` TEXT DEFAULT '' NOT NULL,
  `tokenKey` TEXT DEFAULT '' NOT NULL,
  `verified` BOOLEAN DEFAULT FALSE NOT NULL,
  "first_name" TEXT DEFAULT '' NOT NULL,
  "last_name" TEXT DEFAULT '' NOT NULL,
  "phone" TEXT DEFAULT '' NOT NULL,
  "role" TEXT DEFAULT '' NOT NULL,
  "is_active" BOOLEAN DEFAULT FALSE NOT NULL,
  "time_zone" TEXT DEFAULT '' NOT NULL,
  "npi" TEXT DEFAULT '' NOT NULL,
  "patient" TEXT DEFAULT '' NOT NULL,
  "must_change_password" BOOLEAN DEFAULT FALSE NOT NULL,
  "two_factor_enabled" BOOLEAN DEFAULT FALSE NOT NULL,
  "last_login_at" TEXT DEFAULT '' NOT NULL,
  "created_at" TEXT DEFAULT '' NOT NULL,
  "updated_at" TEXT DEFAULT '' NOT NULL,
  "totp_last_step" NUMERIC DEFAULT 0 NOT NULL,
  "totp_pending_failures" NUMERIC DEFAULT 0 NOT NULL,
  "totp_pending_until" TEXT DEFAULT '' NOT NULL,
  "totp_secret" TEXT DEFAULT '' NOT NULL,
  "totp_pending_secret" TEXT DEFAULT '' NOT NULL,
  "totp_pending_codes" TEXT DEFAULT '' NOT NULL,
  "taxonomy_code" TEXT DEFAULT '' NOT NULL,
  "weight_unit" TEXT DEFAULT '' NOT NULL,
  "temperature_unit" TEXT DEFAULT '' NOT NULL,
  "single_keys" TEXT DEFAULT '' NOT NULL
);

CREATE TABLE `refresh_tokens` (
  `device_id` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `family` TEXT DEFAULT '' NOT NULL,
  `family_started_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `issued_at` TEXT DEFAULT '' NOT NULL,
  `last_used_at` TEXT DEFAULT '' NOT NULL,
  `parent` TEXT DEFAULT '' NOT NULL,
  `revoked_because` TEXT DEFAULT '' NOT NULL,
  `source_ip` TEXT DEFAULT '' NOT NULL,
  `state` TEXT DEFAULT '' NOT NULL,
  `token_hash` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  "access_used_at" TEXT DEFAULT '' NOT NULL,
  "second_factor" BOOLEAN DEFAULT FALSE NOT NULL
);

CREATE TABLE `login_failures` (
  `email_key` TEXT DEFAULT '' NOT NULL,
  `failures` NUMERIC DEFAULT 0 NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_failure_at` TEXT DEFAULT '' NOT NULL,
  `locked_until` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_login_failures_key` ON `login_failures` (`email_key`);

CREATE TABLE `backup_codes` (
  `code_hash` TEXT DEFAULT '' NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `used_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_backup_codes_user_code` ON `backup_codes` (
  `user`,
  `code_hash`
);

CREATE TABLE `reset_tokens` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `purpose` TEXT DEFAULT '' NOT NULL,
  `token_hash` TEXT DEFAULT '' NOT NULL,
  `used_at` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_reset_tokens_hash` ON `reset_tokens` (`token_hash`);

CREATE INDEX `idx_reset_tokens_user` ON `reset_tokens` (
  `user`,
  `created_at`
);

CREATE TABLE `passkeys` (
  `aaguid` TEXT DEFAULT '' NOT NULL,
  `backed_up` BOOLEAN DEFAULT FALSE NOT NULL,
  `backup_eligible` BOOLEAN DEFAULT FALSE NOT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `credential_id` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `last_used_at` TEXT DEFAULT '' NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `public_key` TEXT DEFAULT '' NOT NULL,
  `sign_count` NUMERIC DEFAULT 0 NOT NULL,
  `transports` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL,
  `user_verified` BOOLEAN DEFAULT FALSE NOT NULL
);

CREATE UNIQUE INDEX `idx_passkeys_credential` ON `passkeys` (`credential_id`);

CREATE INDEX `idx_passkeys_user` ON `passkeys` (`user`);

CREATE TABLE `sign_in_steps` (
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `key_hash` TEXT DEFAULT '' NOT NULL,
  `token_hash` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_sign_in_steps_hash` ON `sign_in_steps` (`token_hash`);

CREATE INDEX `idx_sign_in_steps_expires` ON `sign_in_steps` (`expires_at`);

CREATE TABLE `used_challenges` (
  `challenge_hash` TEXT DEFAULT '' NOT NULL,
  `expires_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL
);

CREATE UNIQUE INDEX `idx_used_challenges_hash` ON `used_challenges` (`challenge_hash`);

CREATE INDEX `idx_used_challenges_expires` ON `used_challenges` (`expires_at`);

CREATE UNIQUE INDEX `idx_tokenKey_pbc_3142635823` ON `_superusers` (`tokenKey`);

CREATE UNIQUE INDEX `idx_email_pbc_3142635823` ON `_superusers` (`email`) WHERE `email` != '';

CREATE TABLE `clients` (
  `active` BOOLEAN DEFAULT FALSE NOT NULL,
  `allowed_cidrs` JSON DEFAULT NULL,
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `jwks` JSON DEFAULT NULL,
  `jwks_url` TEXT DEFAULT '' NOT NULL,
  `last_used_at` TEXT DEFAULT '' NOT NULL,
  `name` TEXT DEFAULT '' NOT NULL,
  `scopes` JSON DEFAULT NULL,
  `secret_hash` TEXT DEFAULT '' NOT NULL,
  `token_key` TEXT DEFAULT '' NOT NULL,
  `updated_at` TEXT DEFAULT '' NOT NULL
);

CREATE INDEX `idx_clients_id_nocase` ON `clients` (`id` COLLATE NOCASE);

CREATE INDEX `idx_clients_created` ON `clients` (
  `created_at`,
  `id`
);

CREATE UNIQUE INDEX `idx_tokenKey__pb_users_auth_` ON `users` (`tokenKey`);

CREATE UNIQUE INDEX `idx_email__pb_users_auth_` ON `users` (`email`) WHERE `email` != '';

CREATE INDEX `idx_users_patient` ON `users` (`patient`) WHERE patient != '';

CREATE TABLE `identities` (
  `created_at` TEXT DEFAULT '' NOT NULL,
  `id` TEXT PRIMARY KEY DEFAULT ('r'||lower(hex(randomblob(7)))) NOT NULL,
  `issuer` TEXT DEFAULT '' NOT NULL,
  `last_used_at` TEXT DEFAULT '' NOT NULL,
  `subject` TEXT DEFAULT '' NOT NULL,
  `user` TEXT DEFAULT '' NOT NULL
);

CREATE UNIQUE INDEX `idx_identities_subject` ON `identities` (
  `issuer`,
  `subject`
);

CREATE INDEX `idx_identities_user` ON `identities` (`user`);

CREATE UNIQUE INDEX `idx_refresh_tokens_hash` ON `refresh_tokens` (`token_hash`);

CREATE INDEX `idx_refresh_tokens_family` ON `refresh_tokens` (`family`);

CREATE INDEX `idx_refresh_tokens_user_state` ON `refresh_tokens` (
  `user`,
  `state`
);

CREATE INDEX `idx_refresh_tokens_expires` ON `refresh_tokens` (`expires_at`);
