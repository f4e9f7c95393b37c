SELECT employee_id, manager_id, employee_first_name AS first_name, employee_last_name AS last_name, employee_mi AS middle_initial,
  CAST(employee_job_code AS INT) AS job_code, employee_branch AS branch, employee_office AS office, employee_phone AS phone
FROM staging.hr
