module github.com/vigilhealth/vigil/tools/icd10

go 1.27

replace github.com/vigilhealth/vigil => ../..
