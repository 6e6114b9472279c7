SET sql_log_bin = 0;
ALTER DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci;
