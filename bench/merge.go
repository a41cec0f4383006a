package main

import (
	"fmt"
	"maps"
	"path/filepath"
)

// A trialName is what is measured in one file only, or peers and limits would be those of
// another machine or hour.
type trialName struct {
	work, store, contender string
	setting                setting
}

// merge returns the runs of all files, and the files. What has been measured in two of
// them is an error.
func merge(o options, paths []string) (all results, files []source, _ error) {
	seen := make(map[trialName]string)
	for _, path := range paths {
		r, err := loadResults(path)
		if err != nil {
			return all, nil, err
		}
		name, err := filepath.Rel(o.out, path)
		if err != nil {
			return all, nil, err
		}
		for _, run := range r.Runs {
			what := trialName{run.Work, run.Store, run.Contender, run.Setting}
			if other := seen[what]; other != "" && other != path {
				return all, nil, fmt.Errorf("bench: %s and %s have both measured %s of %s on %s with %v: report one of them", other, path, run.Work, run.Contender, run.Store, run.Setting)
			}
			seen[what] = path
		}
		if all.Servers == nil {
			all = r
		} else {
			all.Runs = append(all.Runs, r.Runs...)
			maps.Copy(all.Servers, r.Servers)
			maps.Copy(all.Peers, r.Peers)
		}
		files = append(files, source{results: r, File: filepath.ToSlash(name)})
	}
	return all, files, nil
}
