package cofferdam

import (
	"encoding/json"
	"strings"
)

// Content is a content item of a result. The body is in Text or in Bytes.
type Content struct {
	MediaType string
	Text      string
	Bytes     []byte
	// URI is the URI of an embedded resource.
	URI         string
	Annotations map[string]any
}

// Output is a result with more than one text or value.
type Output struct {
	Content []Content
	// Structured is the value that matches the tool's output schema. It is encoded as JSON.
	Structured any
	// View is shown to the user instead of the content.
	View *Content
	// Truncated marks an incomplete result. The content should explain how to get the rest.
	Truncated   bool
	Annotations map[string]any
}

// Text returns plain text.
func Text(text string) Content { return Content{MediaType: "text/plain", Text: text} }

// JSON returns a value encoded as JSON.
func JSON(value any) (Content, error) {
	text, err := json.Marshal(value)
	return Content{MediaType: "application/json", Text: string(text)}, err
}

// Image returns an image: image/png, image/jpeg, image/gif or image/webp.
func Image(mediaType string, data []byte) Content { return binary(mediaType, data) }

// Audio returns audio, such as audio/wav.
func Audio(mediaType string, data []byte) Content { return binary(mediaType, data) }

// TextResource returns a copy of a text resource.
func TextResource(uri, mediaType, text string) Content {
	return Content{MediaType: mediaType, Text: text, URI: uri}
}

// BytesResource returns a copy of a binary resource.
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
