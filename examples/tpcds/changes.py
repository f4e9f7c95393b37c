"""What happens to TPC-DS's tables in a round of changes: each statement changes a few rows, others in each round.

Beyond the specification, which only adds and deletes sales: rows move between the keys that the queries join and group by, keys become
NULL and have a value again, and dimensions change, come and go.
"""

from __future__ import annotations

import re


def _some(key: str, step: int, one_in: int) -> str:
    """A share of the rows by hash, other ones in each round."""
    return f"pmod(xxhash64({key}, {step}), {one_in}) = 0"


def statements(step: int) -> list[tuple[str, str]]:
    """(table, statement that changes it, with the table's name in braces), in order."""
    return [(re.findall(r"{(\w+)}", text)[0], text) for text in (*_facts(step), *_dimensions(step), *_rows_come_and_go(step))]


def _facts(step: int) -> list[str]:
    """Sales are corrected, move to other days, customers and shops, or are deleted, with or without what came back of them."""
    return [
        f"DELETE FROM {{store_sales}} WHERE {_some('ss_ticket_number', step, 60)}",
        f"DELETE FROM {{store_returns}} WHERE {_some('sr_ticket_number, sr_item_sk', step, 40)}",
        f"DELETE FROM {{catalog_sales}} WHERE {_some('cs_order_number, cs_item_sk', step, 60)}",
        f"DELETE FROM {{catalog_returns}} WHERE {_some('cr_order_number', step, 40)}",
        f"DELETE FROM {{web_sales}} WHERE {_some('ws_order_number', step, 60)}",
        f"DELETE FROM {{web_returns}} WHERE {_some('wr_order_number, wr_item_sk', step, 40)}",
        f"DELETE FROM {{inventory}} WHERE {_some('inv_item_sk, inv_date_sk', step, 80)}",
        "UPDATE {store_sales} SET ss_quantity = ss_quantity + 1, ss_net_profit = ss_net_profit - 10, ss_net_paid = ss_net_paid + 5, "
        "ss_sales_price = ss_sales_price + 1, ss_ext_sales_price = ss_ext_sales_price + 7, "
        f"ss_customer_sk = ss_customer_sk % 50 + 1 WHERE {_some('ss_ticket_number', step + 10, 60)}",
        "UPDATE {store_sales} SET ss_sold_date_sk = ss_sold_date_sk + 28, ss_store_sk = CASE ss_store_sk WHEN 1 THEN NULL ELSE 1 END, "
        f"ss_hdemo_sk = ss_hdemo_sk % 20 + 1 WHERE {_some('ss_item_sk, ss_ticket_number', step + 20, 80)}",
        "UPDATE {store_returns} SET sr_return_quantity = coalesce(sr_return_quantity, 0) + 1, sr_return_amt = sr_return_amt + 3, "
        f"sr_reason_sk = 28, sr_customer_sk = sr_customer_sk % 30 + 1 WHERE {_some('sr_item_sk', step, 30)}",
        "UPDATE {catalog_sales} SET cs_quantity = coalesce(cs_quantity, 3) + 2, cs_ext_discount_amt = cs_ext_discount_amt * 2, "
        f"cs_bill_customer_sk = cs_bill_customer_sk % 50 + 1, cs_ship_addr_sk = NULL WHERE {_some('cs_order_number', step + 10, 60)}",
        "UPDATE {catalog_sales} SET cs_sold_date_sk = cs_sold_date_sk - 7, cs_warehouse_sk = cs_warehouse_sk % 5 + 1 "
        f"WHERE {_some('cs_item_sk, cs_order_number', step + 20, 80)}",
        f"UPDATE {{catalog_returns}} SET cr_return_amount = 10500, cr_net_loss = cr_net_loss + 1 WHERE {_some('cr_item_sk', step, 30)}",
        "UPDATE {web_sales} SET ws_ext_sales_price = ws_ext_sales_price + 1, ws_ext_discount_amt = ws_ext_discount_amt * 2, "
        f"ws_bill_customer_sk = ws_bill_customer_sk % 50 + 1, ws_ship_customer_sk = NULL WHERE {_some('ws_order_number', step + 10, 40)}",
        "UPDATE {web_sales} SET ws_sold_date_sk = ws_sold_date_sk + 7, ws_web_site_sk = ws_web_site_sk % 6 + 1 "
        f"WHERE {_some('ws_item_sk, ws_order_number', step + 20, 60)}",
        f"UPDATE {{web_returns}} SET wr_return_amt = wr_return_amt + 100, wr_reason_sk = 28 WHERE {_some('wr_item_sk', step, 30)}",
        "UPDATE {inventory} SET inv_quantity_on_hand = 300 - inv_quantity_on_hand "
        f"WHERE {_some('inv_item_sk, inv_date_sk', step + 10, 60)}",
    ]


def _dimensions(step: int) -> list[str]:
    """Items, people and places change what the queries select and group by."""
    return [
        "UPDATE {item} SET i_current_price = i_current_price + 5, i_color = 'pale', i_manager_id = 1, i_category = 'Books', "
        f"i_category_id = 1 WHERE {_some('i_item_sk', step, 50)}",
        "UPDATE {item} SET i_class = 'pants', i_brand = 'importoamalg #1', i_manufact_id = 128 "
        f"WHERE {_some('i_item_sk', step + 10, 60)}",
        "UPDATE {customer} SET c_current_addr_sk = c_current_addr_sk % 20 + 1, c_last_name = 'Moved', c_preferred_cust_flag = 'Y' "
        f"WHERE {_some('c_customer_sk', step, 40)}",
        "UPDATE {customer_address} SET ca_state = 'GA', ca_county = 'Rush County', ca_zip = '85669', ca_gmt_offset = -5 "
        f"WHERE {_some('ca_address_sk', step, 40)}",
        f"UPDATE {{customer_demographics}} SET cd_education_status = 'College', cd_dep_count = 2 WHERE {_some('cd_demo_sk', step, 50)}",
        f"UPDATE {{household_demographics}} SET hd_vehicle_count = 3, hd_dep_count = 4 WHERE {_some('hd_demo_sk', step, 40)}",
        "UPDATE {store} SET s_state = 'TN', s_county = 'Orange County', s_market_id = 8, s_gmt_offset = -5 "
        f"WHERE s_store_sk = {step + 2}",
        "UPDATE {promotion} SET p_channel_email = CASE p_channel_email WHEN 'N' THEN 'Y' ELSE 'N' END, p_channel_tv = 'N' "
        f"WHERE {_some('p_promo_sk', step, 8)}",
        f"UPDATE {{warehouse}} SET w_warehouse_name = 'Renamed', w_state = 'GA' WHERE w_warehouse_sk = {step + 1}",
        f"UPDATE {{web_site}} SET web_company_name = 'pri', web_name = 'site_2' WHERE web_site_sk = {step + 1}",
        f"UPDATE {{web_page}} SET wp_char_count = 5120 WHERE wp_web_page_sk = {step + 2}",
        f"UPDATE {{call_center}} SET cc_manager = 'Somebody Else' WHERE cc_call_center_sk = {step}",
        f"UPDATE {{date_dim}} SET d_day_name = 'Sunday', d_dow = 0 WHERE {_some('d_date_sk', step, 400)}",
        f"UPDATE {{time_dim}} SET t_meal_time = 'dinner', t_hour = 20 WHERE {_some('t_time_sk', step, 200)}",
    ]


def _rows_come_and_go(step: int) -> list[str]:
    """Rows of dimensions are deleted while sales point to them; customers and items are new versions of others."""
    return [
        f"DELETE FROM {{customer}} WHERE {_some('c_customer_sk', step + 20, 80)}",
        f"DELETE FROM {{item}} WHERE {_some('i_item_sk', step + 20, 90)}",
        f"DELETE FROM {{customer_address}} WHERE {_some('ca_address_sk', step + 20, 80)}",
        f"DELETE FROM {{promotion}} WHERE p_promo_sk = {step + 10}",
        f"DELETE FROM {{reason}} WHERE r_reason_sk = {step + 3}",
        f"DELETE FROM {{catalog_page}} WHERE cp_catalog_page_sk = {step}",
        f"INSERT INTO {{customer}} SELECT c_customer_sk + {10_000 * step} AS c_customer_sk, * EXCEPT (c_customer_sk) FROM {{customer}} "
        f"WHERE c_customer_sk < 10000 AND {_some('c_customer_sk', step + 30, 60)}",
        f"INSERT INTO {{item}} SELECT i_item_sk + {10_000 * step} AS i_item_sk, * EXCEPT (i_item_sk) FROM {{item}} "
        f"WHERE i_item_sk < 10000 AND {_some('i_item_sk', step + 30, 60)}",
        f"INSERT INTO {{reason}} VALUES ({100 + step}, 'AAAAAAAAAAAAAAAA', 'reason 28')",
    ]
