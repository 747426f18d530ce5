package cofferdam

import (
	"encoding/json"
	"strings"
)

// Content is a piece of a result. A text has Text as its body, everything else Bytes.
type Content struct {
	MediaType string
	Text      string
	Bytes     []byte
	// URI is the address of the resource that this is a copy of, for an embedded resource.
	URI         string
	Annotations map[string]any
}

// Output is the result of a call, if text or a value alone is not enough.
type Output struct {
	Content []Content
	// Structured is the value for the tool's output schema. It is encoded as JSON.
	Structured any
	// View is what the user sees instead of the content.
	View *Content
	// Truncated says that something was left out. The content should say how to get the rest.
	Truncated   bool
	Annotations map[string]any
}

// Text makes a text.
func Text(text string) Content { return Content{MediaType: "text/plain", Text: text} }

// JSON encodes a value.
func JSON(value any) (Content, error) {
	text, err := json.Marshal(value)
	return Content{MediaType: "application/json", Text: string(text)}, err
}

// Image makes an image: image/png, image/jpeg, image/gif or image/webp.
func Image(mediaType string, data []byte) Content { return binary(mediaType, data) }

// Audio makes audio, such as audio/wav.
func Audio(mediaType string, data []byte) Content { return binary(mediaType, data) }

// TextResource makes a copy of a resource that is text.
func TextResource(uri, mediaType, text string) Content {
	return Content{MediaType: mediaType, Text: text, URI: uri}
}

// BytesResource makes a copy of a resource that is not text.
func BytesResource(uri, mediaType string, data []byte) Content {
	content := binary(mediaType, data)
	content.URI = uri
	return content
}

// TextView shows a text to the user.
func TextView(text string) *Content { return &Content{MediaType: "text/plain", Text: text} }

// DiffView shows a unified diff to the user.
func DiffView(diff string) *Content { return &Content{MediaType: "text/x-diff", Text: diff} }

// TableView shows a table to the user. The host gets CSV (RFC 4180). Each row has as many cells as
// the header.
func TableView(header []string, rows [][]string) *Content {
	var text strings.Builder
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			if i > 0 {
				text.WriteByte(',')
			}
			// An empty text is quoted, because a blank line is not a row.
			if cell == "" || strings.ContainsAny(cell, ",\"\r\n") {
				cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
			}
			text.WriteString(cell)
		}
		text.WriteString("\r\n")
	}
	return &Content{MediaType: "text/csv", Text: text.String()}
}

func binary(mediaType string, data []byte) Content {
	if data == nil {
		data = []byte{}
	}
	return Content{MediaType: mediaType, Bytes: data}
}
