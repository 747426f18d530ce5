;; Asks for a tebibyte of random bytes.
(func $call (result i32)
  (call $random.get-random-bytes (i64.const 1099511627776) (global.get $ret))
  (call $text @"got them"))
