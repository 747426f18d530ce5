module wit_component

go 1.27.1

require go.bytecodealliance.org/pkg v0.4.0

// It comes with the project, so that building needs no module proxy.
replace go.bytecodealliance.org/pkg => ./wit-runtime
