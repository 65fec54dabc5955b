module github.com/vigilhealth/vigil/tools/console

go 1.27

require (
	github.com/andybalholm/brotli v1.1.1
	github.com/evanw/esbuild v0.28.2
	github.com/vigilhealth/vigil v0.0.0
	golang.org/x/sync v0.24.0
)

require golang.org/x/sys v0.50.0 // indirect

replace github.com/vigilhealth/vigil => ../..
