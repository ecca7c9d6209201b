// Package selection decides which replica a request goes to.
package selection
