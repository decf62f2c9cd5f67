package budget

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/tiers"
)

func TestOf(t *testing.T) {
	minute, hour, day, month := Dimension{Minute}, Dimension{Hour}, Dimension{Day}, Dimension{Month}
	for name, tt := range map[string]struct {
		limits tiers.Limits
		want   []Budget
	}{
		"minute and day": {
			tiers.Limits{PerMinute: 5, PerDay: 100},
			[]Budget{{minute, 5}, {day, 100}},
		},
		"all, shortest first": {
			tiers.Limits{PerMonth: 4, PerDay: 3, PerHour: 2, PerMinute: 1},
			[]Budget{{minute, 1}, {hour, 2}, {day, 3}, {month, 4}},
		},
		"unlimited minute and day": {
			tiers.Limits{PerMinute: tiers.Unlimited, PerHour: 2, PerDay: tiers.Unlimited, PerMonth: 4},
			[]Budget{{hour, 2}, {month, 4}},
		},
		"unlimited hour and month": {
			tiers.Limits{PerMinute: 1, PerHour: tiers.Unlimited, PerDay: 3, PerMonth: tiers.Unlimited},
			[]Budget{{minute, 1}, {day, 3}},
		},
		"all unlimited": {tiers.Limits{
			PerMinute: tiers.Unlimited, PerHour: tiers.Unlimited,
			PerDay: tiers.Unlimited, PerMonth: tiers.Unlimited,
		}, nil},
		"nothing, as of a zero Store": {tiers.Limits{}, []Budget{{minute, 0}, {day, 0}}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tt.want, Of(tt.limits)) })
	}
}

func TestNamesOfDimensions(t *testing.T) {
	for want, d := range map[string]Dimension{
		"minute": {Minute}, "hour": {Hour}, "day": {Day}, "month": {Month}, "90s": {Minute + Minute/2},
	} {
		require.Equal(t, want, d.String())
	}
	require.Equal(t, "ratelimit:alice:3600", Names{}.Key("alice", Dimension{Hour}))
	require.Equal(t, "ratelimit:alice:2592000", Names{}.Key("alice", Dimension{Month}))
}
