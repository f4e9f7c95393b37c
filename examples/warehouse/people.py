"""The people of the warehouse as SELECTs: employees (HR), change records of customers and their accounts, prospects."""

from __future__ import annotations

from collections.abc import Iterator

from examples.warehouse.shape import FOUNDED, LOADED, OPENED, STARTED, Shape, chosen, ids, period, text_of

_FIRST = ("Ada", "Bo", "Chen", "Dina", "Emre", "Fatima", "Goran", "Hana", "Ivan", "Jamal", "Kofi", "Lena", "Mei", "Nia", "Omar", "Petra")
_LAST = ("Abe", "Bauer", "Costa", "Diaz", "Eriksen", "Fofana", "Garcia", "Haas", "Ito", "Jones", "Kim", "Lopez", "Meyer", "Novak", "Okafor")
_STREETS = ("Main Street", "Oak Avenue", "Hill Road", "Lake Drive", "Station Square")
_CITIES = ("Springfield", "Riverside", "Fairview", "Georgetown", "Salem", "Madison")
_STATES = ("CA", "NY", "TX", "WA", "IL", "ON")
_RATES = ("US1", "US2", "US3", "CA1", "CA2")
_MONTHS_6 = 15_768_000


def employees(shape: Shape, batch: int) -> str:
    """HR: key (employee_id). Every other one is a broker, which job code 314 says."""
    return f"""
    SELECT id AS employee_id, id div 10 AS manager_id, {shape.among("id", "first", *_FIRST)} AS employee_first_name,
      {shape.among("id", "last", *_LAST)} AS employee_last_name, substr('ABCDEFGHIJ', 1 + id % 10, 1) AS employee_mi,
      CASE WHEN id % 2 = 0 THEN '314' ELSE '412' END AS employee_job_code,
      concat('Branch ', {shape.random("id", "branch", 40)}) AS employee_branch,
      concat('OFFICE', {shape.random("id", "office", 900)}) AS employee_office,
      concat('(', 200 + id % 700, ') 555-', lpad(id % 10000, 4, '0')) AS employee_phone
    FROM {ids(shape.people, batch)}"""


def moved_employees(shape: Shape, batch: int) -> str:
    """Employees who are now elsewhere: (id, branch)."""
    return f"SELECT id, concat('Branch ', {shape.random('id', f'branch {batch}', 40)}) AS branch FROM {chosen(shape.people, batch, 1)}"


def customer_actions(shape: Shape, batch: int) -> str:
    """CustomerMgmt: key (action_seq), the place in the file. A change has the changed columns only, NULL elsewhere."""
    events = "\nUNION ALL\n".join(_historical(shape) if batch == 1 else _incremental(shape, batch))
    return f"""
    SELECT {batch} * 1000000000L + kind * 100000000L + id AS action_seq, action_type, {text_of("seconds")} AS action_ts, id AS c_id,
      {_customer_columns(shape)},
      {_account_columns(shape)}
    FROM ({events})"""


def _historical(shape: Shape) -> Iterator[str]:
    total = shape.customers
    yield _events(shape, 0, "NEW", f"range({total})", (FOUNDED, OPENED))
    yield _events(shape, 1, "ADDACCT", f"(SELECT id FROM range({total}) WHERE {_has_second(shape, 'id')})", (OPENED, STARTED), account=1)
    for version in (1, 2):
        those = f"(SELECT id FROM range({total}) WHERE {shape.random('id', f'updated {version}', 2)} = 0)"
        yield _events(shape, 1 + version, "UPDCUST", those, (STARTED, LOADED - _MONTHS_6), version)
    yield _events(shape, 4, "UPDACCT", f"(SELECT id FROM range({total}) WHERE id % 3 = 0)", (STARTED, LOADED - _MONTHS_6), 1)
    yield _events(shape, 5, "CLOSEACCT", f"(SELECT id FROM range({total}) WHERE id % 19 = 7)", (LOADED - _MONTHS_6, LOADED))
    yield _events(shape, 6, "INACT", f"(SELECT id FROM range({total}) WHERE id % 31 = 11)", (LOADED - _MONTHS_6, LOADED))


def _incremental(shape: Shape, batch: int) -> Iterator[str]:
    """New customers, further accounts, changes and ends; and changes of the past that were reported late."""
    total, (start, seconds) = shape.customers, period(batch)
    now, few = (start, start + seconds), total // 4
    yield _events(shape, 0, "NEW", ids(total, batch), now)
    yield _events(shape, 1, "ADDACCT", chosen(total, batch, 1), now, batch, account=batch)
    yield _events(shape, 2, "UPDCUST", chosen(total, batch, 2), now, 10 * batch)
    yield _events(shape, 3, "UPDCUST", chosen(total, batch, 3), (STARTED, LOADED), 10 * batch + 1)
    yield _events(shape, 4, "UPDACCT", chosen(total, batch, 4), now, 10 * batch)
    yield _events(shape, 5, "CLOSEACCT", chosen(few, batch, 5), now)
    yield _events(shape, 6, "INACT", chosen(few, batch, 6), now)


def _events(shape: Shape, kind: int, action: str, those: str, within: tuple[int, int], version: int = 0, account: int = 0) -> str:
    start, end = within
    when = f"{start} + {shape.random('id', f'{action} {version}', end - start)}"
    numbers = f"{kind} AS kind, {version} AS version, {account} AS account"
    return f"SELECT id, '{action}' AS action_type, {when} AS seconds, {numbers} FROM {those}"


def _has_second(shape: Shape, customer: str) -> str:
    return f"{shape.random(customer, 'second', 2)} = 0"


def account_of(shape: Shape, customer: str, key: str) -> str:
    """One of the accounts that a customer had at the historical load."""
    return f"({customer} * 1000 + CASE WHEN {_has_second(shape, customer)} THEN {shape.random(key, 'account', 2)} ELSE 0 END)"


def broker(shape: Shape, key: str) -> str:
    """The id of an employee who is a broker."""
    return f"2 * {shape.random(key, 'broker', shape.people // 2)}"


def _customer_columns(shape: Shape) -> str:
    """All for a new customer, about a third for an updated one."""
    fixed = {
        "c_tax_id": "lpad(id, 9, '9')",
        "c_gndr": "substr('mFfMx', 1 + id % 5, 1)",
        "c_dob": f"CAST(date_sub(DATE'1995-01-01', CAST({shape.random('id', 'dob', 18_000)} AS INT)) AS STRING)",
        "c_l_name": _last(shape),
        "c_f_name": _first(shape),
        "c_m_name": "substr('ABCDEFGHIJ', 1 + id % 10, 1)",
    }
    changing = {
        "c_tier": f"1 + {shape.random('id + version', 'tier', 3)}",
        "c_adline1": _street(shape, "id + version"),
        "c_zipcode": _zip(shape),
        "c_city": shape.among("id + version", "city", *_CITIES),
        "c_state_prov": shape.among("id + version", "state", *_STATES),
        "c_ctry": "CASE WHEN id % 9 = 0 THEN 'Canada' ELSE 'United States of America' END",
        "c_prim_email": "concat('customer', id, '.', version, '@example.com')",
        "c_ctry_code": "'1'",
        "c_area_code": f"CAST(200 + {shape.random('id + version', 'area', 700)} AS STRING)",
        "c_local": f"concat('555-', lpad({shape.random('id + version', 'local', 10_000)}, 4, '0'))",
        "c_lcl_tx_id": shape.among("id + version", "local tax", *_RATES),
        "c_nat_tx_id": shape.among("id + version", "national tax", *_RATES),
    }
    new = [f"CASE WHEN action_type = 'NEW' THEN {value} END AS {name}" for name, value in fixed.items()]
    updated = "action_type = 'NEW' OR action_type = 'UPDCUST' AND"
    new += [
        f"CASE WHEN {updated} {shape.random('id * 100 + version', name, 3)} = 0 THEN {value} END AS {name}"
        for name, value in changing.items()
    ]
    return ",\n      ".join(new)


def _account_columns(shape: Shape) -> str:
    has, new = "action_type IN ('NEW', 'ADDACCT', 'UPDACCT', 'CLOSEACCT')", "action_type IN ('NEW', 'ADDACCT')"
    changed = f"{new} OR action_type = 'UPDACCT' AND {shape.random('id * 100 + version', 'account change', 2)}"
    return f"""CASE WHEN {has} THEN id * 1000 + account END AS ca_id,
      CASE WHEN {new} THEN {shape.random("id + account", "tax status", 3)} END AS ca_tax_st,
      CASE WHEN {changed} = 0 THEN {broker(shape, "id * 1000 + account + version")} END AS ca_b_id,
      CASE WHEN {changed} = 1 THEN concat('Account ', version, ' of ', id) END AS ca_name"""


def _first(shape: Shape) -> str:
    return shape.among("id", "customer first", *_FIRST)


def _last(shape: Shape) -> str:
    return shape.among("id", "customer last", *_LAST)


def _street(shape: Shape, key: str = "id") -> str:
    return f"concat(id, ' ', {shape.among(key, 'street', *_STREETS)})"


def _zip(shape: Shape) -> str:
    return f"lpad({shape.random('id', 'zip', 100_000)}, 5, '0')"


def prospects(shape: Shape, batch: int) -> str:
    """Prospect: key (agency_id). Every third has the name and the address of a customer."""
    return f"""
    SELECT concat('AG', lpad(id, 9, '0')) AS agency_id,
      CASE WHEN id % 3 = 0 THEN upper({_last(shape)}) ELSE {shape.among("id", "prospect last", *_LAST)} END AS last_name,
      {_first(shape)} AS first_name, substr('ABCDEFGHIJ', 1 + id % 10, 1) AS middle_initial, substr('MFU', 1 + id % 3, 1) AS gender,
      {_street(shape)} AS address_line_1, {_zip(shape)} AS postal_code,
      {shape.among("id", "city", *_CITIES)} AS city, {shape.among("id", "state", *_STATES)} AS state, {_marketed(shape, "1")}
    FROM {ids(shape.people, batch)}"""


def _marketed(shape: Shape, version: str) -> str:
    """What an agency knows: a text where the source file has one, empty where it knows nothing."""
    key = f"id * 100 + {version}"
    below = {"income": 400_000, "number_cars": 5, "number_children": 6, "age": 90, "credit_rating": 850, "number_credit_cards": 10}
    known = [
        f"CASE WHEN {shape.random(key, f'{name} known', 12)} > 0 THEN CAST({shape.random(key, name, n)} AS STRING) ELSE '' END AS {name}"
        for name, n in {**below, "net_worth": 1_500_000}.items()
    ]
    return ",\n      ".join([*known, f"{shape.among(key, 'marital', 'S', 'M', 'D', 'W', 'U')} AS marital_status"])


def marketed_again(shape: Shape, batch: int) -> str:
    """Prospects of whom the agency knows something else: (id, the marketing columns)."""
    return f"SELECT id, {_marketed(shape, str(batch))} FROM {chosen(shape.people, batch, 2)}"


def gone_prospects(shape: Shape, batch: int) -> str:
    """Prospects who are no longer in the file: (id)."""
    return f"SELECT id FROM {chosen(shape.people, batch, 3)}"
