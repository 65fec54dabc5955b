module github.com/vigilhealth/vigil/tools/wordlint

go 1.27
