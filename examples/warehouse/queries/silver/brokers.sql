SELECT b.employee_id AS broker_id, b.manager_id, b.first_name, b.last_name, b.middle_initial, b.branch, b.office, b.phone,
  m.last_name AS manager_last_name
FROM bronze.employees AS b
LEFT JOIN bronze.employees AS m ON m.employee_id = b.manager_id
WHERE b.job_code = 314
