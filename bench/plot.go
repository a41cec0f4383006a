package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// A picture is a work drawn over the size of its settings.
type picture struct {
	work, metric  string
	title, x, y   string
	scale         float64 // from the recorded figure to what is drawn
	size          func(setting) int
	severalOrSole func(setting) bool
}

func pictures() []picture {
	return []picture{
		{"handover", "handover", "Clean handover", "candidates, in up to 10 processes", "ms", 1000,
			func(s setting) int { return s.Candidates }, func(s setting) bool { return s.Processes > 1 }},
		{"crowd", "memory", "Elections led by one process: memory", "elections", "KB each", 1.0 / 1024,
			func(s setting) int { return s.Elections }, func(setting) bool { return true }},
		{"crowd", "cpu", "Elections led by one process: CPU at rest", "elections", "% of a core", 100,
			func(s setting) int { return s.Elections }, func(setting) bool { return true }},
	}
}

// writePlots draws what the results have at least two sizes of. It returns the files'
// names below folder.
func writePlots(r results, folder string) ([]string, error) {
	var names []string
	for _, p := range pictures() {
		for _, store := range storeNames {
			lines := p.lines(r, store)
			if len(lines) == 0 {
				continue
			}
			name := fmt.Sprintf("results/%s-%s-%s.svg", p.work, p.metric, store)
			if err := p.draw(store, lines, filepath.Join(folder, name)); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// A line is one contender in a picture.
type line struct {
	name   string
	points plotter.XYs
}

func (p picture) lines(r results, store string) []line {
	var all []line
	for _, c := range contenders() {
		if c.Store != store || c.Kind == limit {
			continue
		}
		l := line{name: c.Name}
		for _, run := range r.Runs {
			if run.Work != p.work || run.Store != store || run.Contender != c.Name || run.Round > 0 || !p.severalOrSole(run.Setting) {
				continue
			}
			y := r.median(p.work, store, c.Name, run.Setting, p.metric)
			if !math.IsNaN(y) && y > 0 {
				l.points = append(l.points, plotter.XY{X: float64(p.size(run.Setting)), Y: y * p.scale})
			}
		}
		if len(l.points) > 1 {
			all = append(all, l)
		}
	}
	return all
}

func (p picture) draw(store string, lines []line, path string) error {
	chart := plot.New()
	chart.Title.Text = p.title + ", " + store
	chart.X.Label.Text, chart.Y.Label.Text = p.x, p.y
	chart.X.Scale, chart.Y.Scale = plot.LogScale{}, plot.LogScale{}
	chart.X.Tick.Marker, chart.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	chart.Legend.Top, chart.Legend.Left = true, true
	chart.Add(plotter.NewGrid())
	for i, l := range lines {
		drawn, points, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		drawn.Color, points.Color = plotutil.Color(i), plotutil.Color(i)
		points.Shape = plotutil.Shape(i)
		chart.Add(drawn, points)
		chart.Legend.Add(l.name, drawn, points)
	}
	chart.Y.Max *= 10 // room for the legend
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return chart.Save(18*vg.Centimeter, 11*vg.Centimeter, path)
}
