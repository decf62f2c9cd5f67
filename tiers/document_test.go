package tiers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.yaml.in/yaml/v3"
)

// No input is known to make yaml.v3 panic; a reader that does stands in for it.
func TestPanicOfTheParserIsAnError(t *testing.T) {
	doc, err := next(yaml.NewDecoder(panicking{}))
	assert.EqualError(t, err, "tiers: not YAML")
	assert.Nil(t, doc)
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("internal error") }
