;; Spins when the host asks for memory to put the call's arguments in.
(func $realloc (param i32 i32 i32 i32) (result i32)
  (loop $again (br $again))
  unreachable)
