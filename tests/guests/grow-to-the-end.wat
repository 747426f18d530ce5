;; Takes memory until it gets no more, and carries on with what it has.
(func $call (result i32)
  (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  (call $say-number (memory.size))
  (call $say @" pages")
  (call $answer))
