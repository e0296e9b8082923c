module pause

go 1.25
