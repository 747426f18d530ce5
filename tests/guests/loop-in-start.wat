;; Never gets as far as to be asked anything.
(start $spin)
(func $spin (loop $again (br $again)))
