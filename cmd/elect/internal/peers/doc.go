// Package peers makes what the members of a cluster without a server need: an authority,
// certificates that it signs, and the URLs with which elect becomes a member. All of it is
// in a folder that one person or job keeps, away from the members' hosts:
//
//	ca.key, ca.pem          the authority
//	cluster.json            what was asked for
//	a.example_7000/         what is copied to the host of a member
//	  elect.pem             its key and its certificate
//	  ca.pem
//	  elect.env             ELECT_STORE and so on
//
// A key and its certificate are one file, and files are replaced by a rename, so that
// nobody reads a pair that does not match. Nothing is overwritten but by its successor.
package peers
