// Package axe embeds axe-core, which tests check the page's accessibility with. The program doesn't
// import it.
package axe

import _ "embed" // the script

// Script defines axe in a page.
//
//go:embed axe.min.js
var Script string
