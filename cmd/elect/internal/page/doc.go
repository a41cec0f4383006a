// Package page shows a chronicle of elections in a browser: one page that is embedded, and the
// same as JSON.
//
//	/              the page
//	/api/elections what is known at this moment
//	/api/events    the same as server-sent events: everything first, then what changes
//
// It only shows, and asks nothing of anybody: no cookies, no requests to elsewhere, no writing
// of any kind. There is no authentication. So a page that listens on a loopback address answers
// only to names of this host; a site that a visitor has open elsewhere cannot read it under a
// name that it has made to mean 127.0.0.1.
package page
