//go:build tools

// Package tools pins the emulator that tests/peers/install.sh builds, and all that it is made of.
package tools

import _ "github.com/goccy/bigquery-emulator/cmd/bigquery-emulator"
