;; Waits in the host, where nothing of the guest runs that could be interrupted.
(func $call (result i32)
  (call $poll.block (call $monotonic-clock.subscribe-duration (i64.const 3600000000000)))
  (call $text @"good morning"))
