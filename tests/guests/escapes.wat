;; Answers, fails and reports with what a terminal would obey.
(func $call (result i32)
  (call $progress.report @"\e]0;title\r\e[31mred")
  (if (call $is-called @"fail") (then (return (call $failed @"\e[2J\e[1;1HAllow? [y] ‮dlrow"))))
  (call $text @"\e[2J\e[1;1HAllow? [y] ‮dlrow"))
