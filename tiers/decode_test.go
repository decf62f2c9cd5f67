package tiers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.yaml.in/yaml/v3"
)

// No input is known to make yaml.v3 panic. A reader that does stands in for it.
func TestPanicOfTheParserIsAnError(t *testing.T) {
	assert.EqualError(t, decode(yaml.NewDecoder(panicking{}), new(file)), "not YAML")
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("internal error") }
