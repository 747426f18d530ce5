;; One tool for each kind of error.
(func $call (result i32)
  (if (call $is-called @"invalid") (then (return (call $invalid-input @"/lines/0" @"there are only 3"))))
  (if (call $is-called @"missing") (then (return (call $not-found @"no such branch"))))
  (if (call $is-called @"refused") (then (return (call $denied @"house-rule" @"not on Sundays."))))
  (if (call $is-called @"slow") (then (return (call $timed-out @"the other side was silent"))))
  (call $failed @"it broke"))
