// Package workspace gives fast access to many files. It needs cofferdam.ReadFiles or
// cofferdam.WriteFiles.
//
//	walk, err := workspace.Open(workspace.Options{Root: "src", Globs: []string{"*.go"}})
//	if err != nil {
//		return err
//	}
//	defer walk.Close()
//	for file, err := range walk.Files() {
//		…
//	}
package workspace

import (
	"errors"
	"iter"
	"time"

	types "go.bytecodealliance.org/pkg/wit/types"
	"wit_component/cofferdam"
	"wit_component/cofferdam/internal/denial"
	host "wit_component/cofferdam_plugin_workspace"
)

// The number of entries, and the bytes of files, in one call of the host.
const (
	entriesPerCall = 1024
	bytesPerCall   = 1 << 20
)

// Options are the options of a walk. The zero value walks the whole workspace.
type Options struct {
	// Root is a directory or a file; empty for the whole workspace.
	Root string
	// Globs have the syntax of .gitignore. A glob that begins with `!` excludes files.
	Globs []string
	// Hidden visits files and directories whose names begin with a dot.
	Hidden bool
	// NoIgnore visits files that .gitignore and .ignore exclude.
	NoIgnore bool
	// MaxDepth is the maximum number of directory levels; 0 for no limit.
	MaxDepth uint32
	// Required has byte strings. Files omits files that contain none of them.
	Required           [][]byte
	RequiredIgnoreCase bool
}

// Kind is the kind of an entry.
type Kind uint8

// The kinds of entries.
const (
	KindFile      = Kind(host.EntryKind_File)
	KindDirectory = Kind(host.EntryKind_Directory)
	KindSymlink   = Kind(host.EntryKind_Symlink)
	KindOther     = Kind(host.EntryKind_Other)
)

// Entry is a file, directory or symbolic link of the workspace.
type Entry struct {
	// Path is relative to the workspace.
	Path string
	Kind Kind
	// Size is the size of a file in bytes.
	Size uint64
	// Modified is the time of the last change. It is zero if the time is not known.
	Modified time.Time
}

// File is a file with its whole content.
type File struct {
	Path string
	Data []byte
}

// Walk is a walk through the workspace in the order of paths. A call can have 16 open walks.
type Walk struct{ walk *host.Walk }

// Open begins a walk.
func Open(options Options) (*Walk, error) {
	depth := types.None[uint32]()
	if options.MaxDepth > 0 {
		depth = types.Some(options.MaxDepth)
	}
	result := host.OpenWalk(host.WalkOptions{
		Root:               options.Root,
		Globs:              options.Globs,
		Hidden:             options.Hidden,
		RespectIgnore:      !options.NoIgnore,
		MaxDepth:           depth,
		Required:           options.Required,
		RequiredIgnoreCase: options.RequiredIgnoreCase,
	})
	if result.IsErr() {
		return nil, failure(result.Err())
	}
	return &Walk{result.Ok()}, nil
}

// Entries yields the remaining entries. It ends after an error.
func (w *Walk) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			result := w.walk.NextEntries(entriesPerCall)
			if result.IsErr() {
				yield(Entry{}, failure(result.Err()))
				return
			}
			if len(result.Ok()) == 0 {
				return
			}
			for _, entry := range result.Ok() {
				var modified time.Time
				if entry.Modified.IsSome() {
					at := entry.Modified.Some()
					modified = time.Unix(int64(at.Seconds), int64(at.Nanoseconds))
				}
				if !yield(Entry{entry.Path, Kind(entry.Kind), entry.Size, modified}, nil) {
					return
				}
			}
		}
	}
}

// Files yields the remaining files, each with its whole content. It ends after an error.
func (w *Walk) Files() iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		var file File
		for {
			result := w.walk.NextFiles(bytesPerCall)
			if result.IsErr() {
				yield(File{}, failure(result.Err()))
				return
			}
			data := result.Ok().Data
			if len(result.Ok().Pieces) == 0 {
				return
			}
			for _, piece := range result.Ok().Pieces {
				file.Path = piece.Path
				file.Data = append(file.Data, data[:piece.Length]...)
				data = data[piece.Length:]
				if piece.More {
					continue
				}
				if !yield(file, nil) {
					return
				}
				file = File{}
			}
		}
	}
}

// Problems returns a line for each path that could not be read so far, at most 100.
func (w *Walk) Problems() []string { return w.walk.Problems() }

// Close ends the walk.
func (w *Walk) Close() { w.walk.Drop() }

func failure(err host.WorkspaceError) error {
	switch err.Tag() {
	case host.WorkspaceError_NotFound:
		return cofferdam.NotFound{Message: err.NotFound()}
	case host.WorkspaceError_InvalidGlob:
		return cofferdam.InvalidInput{Message: err.InvalidGlob()}
	case host.WorkspaceError_InvalidOption:
		return errors.New(err.InvalidOption())
	case host.WorkspaceError_Denied:
		return denial.Error(err.Denied())
	default:
		return errors.New(err.Failed())
	}
}
