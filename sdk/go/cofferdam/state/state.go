// Package state is the per-session key-value storage of one tool. It needs cofferdam.KeepState.
//
// A key is 1 to 64 characters of `a-z`, `A-Z`, `0-9`, `.`, `_`, `/` and `-`. A value has at most
// 64 KiB. A tool has at most 256 keys and 256 KiB in total.
package state

import (
	"errors"

	"wit_component/cofferdam/internal/denial"
	host "wit_component/cofferdam_plugin_state"
)

// Get returns the value of a key, or nil if there is none.
func Get(key string) ([]byte, error) {
	result := host.Get(key)
	if result.IsErr() {
		return nil, failure(result.Err())
	}
	if result.Ok().IsNone() {
		return nil, nil
	}
	return append([]byte{}, result.Ok().Some()...), nil
}

// GetText returns the value of a key as text, and whether there is one.
func GetText(key string) (string, bool, error) {
	value, err := Get(key)
	return string(value), value != nil, err
}

// Set sets the value of a key.
func Set(key string, value []byte) error {
	if result := host.Set(key, value); result.IsErr() {
		return failure(result.Err())
	}
	return nil
}

// SetText sets the value of a key to a text.
func SetText(key, text string) error { return Set(key, []byte(text)) }

// Delete deletes a key. Deleting a key that does not exist is not an error.
func Delete(key string) error {
	if result := host.Delete(key); result.IsErr() {
		return failure(result.Err())
	}
	return nil
}

// Keys returns all keys in order.
func Keys() ([]string, error) {
	result := host.Keys()
	if result.IsErr() {
		return nil, failure(result.Err())
	}
	return result.Ok(), nil
}

func failure(err host.StateError) error {
	switch err.Tag() {
	case host.StateError_Denied:
		return denial.Error(err.Denied())
	case host.StateError_InvalidKey:
		return errors.New(err.InvalidKey())
	default:
		return errors.New(err.Full())
	}
}
