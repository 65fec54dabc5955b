package auth

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
)

// A QR code has a white margin of four modules (ISO/IEC 18004, 6.3.8), and is drawn no smaller than this.
// Source: docs/decisions/authentication.md, "QR endpoint".
const (
	quietZone = 4
	minPixels = 256
)

// QRCode is a drawn secret: whoever sees it has it.
type QRCode struct {
	modules barcode.Barcode
	side    int // modules, margin included
}

// NewQRCode encodes a provisioning URI.
func NewQRCode(uri string) (QRCode, error) {
	modules, err := qr.Encode(uri, qr.M, qr.Auto)
	if err != nil {
		return QRCode{}, fmt.Errorf("encode QR code: %w", err)
	}
	return QRCode{modules: modules, side: modules.Bounds().Dx() + 2*quietZone}, nil
}

// dark reports whether a module is black; outside of the code none is.
func (q QRCode) dark(x, y int) bool {
	at := image.Pt(x-quietZone, y-quietZone)
	return at.In(q.modules.Bounds()) && q.modules.At(at.X, at.Y) == color.Black
}

// PNG draws each module as a square of whole pixels.
func (q QRCode) PNG() ([]byte, error) {
	scale := (minPixels + q.side - 1) / q.side
	canvas := image.NewPaletted(image.Rect(0, 0, q.side*scale, q.side*scale), color.Palette{color.White, color.Black})
	for y := range canvas.Rect.Dy() {
		for x := range canvas.Rect.Dx() {
			if q.dark(x/scale, y/scale) {
				canvas.SetColorIndex(x, y, 1)
			}
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, canvas); err != nil {
		return nil, fmt.Errorf("draw QR code: %w", err)
	}
	return out.Bytes(), nil
}

// SVG draws the same as one path.
func (q QRCode) SVG() []byte {
	var path strings.Builder
	for y := range q.side {
		for x := range q.side {
			if q.dark(x, y) {
				fmt.Fprintf(&path, "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" shape-rendering="crispEdges">`+
		`<rect width="100%%" height="100%%" fill="#fff"/><path d="%s"/></svg>`, minPixels, minPixels, q.side, q.side, path.String())
}
