// Package module is the part of the project that touches Caddy.
package module
