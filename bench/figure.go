package main

import (
	"fmt"
	"math"
	"strings"
)

// format shows a figure to people, with three digits.
func format(x float64, u unit) string {
	switch u {
	case seconds:
		return scaled(x, []string{"µs", "ms", "s"}, 1e-6, 1000)
	case octets:
		return scaled(x, []string{"B", "KB", "MB", "GB"}, 1, 1024)
	case flow:
		return scaled(x, []string{"B/s", "KB/s", "MB/s", "GB/s"}, 1, 1024)
	case share:
		return digits(100*x) + " %"
	case rate:
		return digits(x) + "/s"
	case ttls, number:
	}
	return digits(x)
}

// scaled shows x in the largest unit in which it is not below 1. The first unit is
// first, and each further one is step times as large.
func scaled(x float64, units []string, first, step float64) string {
	scale := first
	for math.Abs(x) >= scale*step && len(units) > 1 {
		scale *= step
		units = units[1:]
	}
	return digits(x/scale) + " " + units[0]
}

func digits(x float64) string {
	if math.Abs(x) >= 100 {
		text := thousands(int(math.Round(math.Abs(x))))
		if x < 0 {
			return "-" + text
		}
		return text
	}
	text := fmt.Sprintf("%.2f", x)
	if math.Abs(x) >= 10 {
		text = fmt.Sprintf("%.1f", x)
	}
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}
