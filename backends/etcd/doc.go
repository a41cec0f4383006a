// Package etcdkv keeps safes in etcd.
package etcdkv
