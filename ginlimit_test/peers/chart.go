package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The chart's measures, in pixels. Its background is transparent, and its colours are read on a
// light page and on a dark one.
const (
	chartWidth  = 860
	chartLabels = 300 // to the left of the bars
	chartBars   = 400
	chartRow    = 22
	chartHead   = 34

	inkColor  = "#7d8590"
	peerColor = "#8f98a3"
	oursColor = "#2f9e5b"
)

// writeChart draws decisions/s as horizontal bars, with a line from the slowest round to the
// fastest. Each group has a scale of its own.
func (c comparison) writeChart(w io.Writer, caption string) error {
	var body strings.Builder
	y, group, scale := chartHead, "", 1.0
	for _, r := range c.results {
		if r.group != group {
			group, scale = r.group, chartBars/c.fastest(r.group)
			y += chartRow / 2
			fmt.Fprintf(&body, `<text x="0" y="%d" font-weight="600">%s, decisions/s</text>`+"\n", y+15, escaped(titleCase(group)))
			y += chartRow
		}
		color := peerColor
		if r.limiter.ours {
			color = oursColor
		}
		rate := r.rate().each(c.slices)
		fmt.Fprintf(&body, `<text x="%d" y="%d" text-anchor="end">%s</text>`, chartLabels-8, y+15, escaped(r.name()))
		fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, chartLabels, y+3, rate.median()*scale, chartRow-6, color)
		fmt.Fprintf(&body, `<path d="M%.1f %dH%.1f" stroke="%s" stroke-width="2"/>`, chartLabels+rate.min()*scale, y+chartRow/2, chartLabels+rate.max()*scale, inkColor)
		fmt.Fprintf(&body, `<text x="%.1f" y="%d">%s</text>`+"\n", chartLabels+rate.max()*scale+8, y+15, thousands(rate.median()))
		y += chartRow
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13" fill="%s" role="img">
<title>Decisions per second of ginlimit and of its peers</title>
<text x="0" y="15">%s</text>
%s</svg>
`, chartWidth, y+8, inkColor, escaped(caption), body.String())
	return err
}

func (c comparison) fastest(group string) float64 {
	fastest := 1.0
	for _, r := range c.results {
		if r.group == group {
			fastest = max(fastest, r.rate().each(c.slices).max())
		}
	}
	return fastest
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
