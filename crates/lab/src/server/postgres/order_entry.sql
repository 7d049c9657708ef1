-- Order entry for PostgreSQL: the tables, indexes and first rows of lab::database::order_entry, as many and as wide; then its five
-- transactions as procedures. Variables, as psql would have them: :warehouses, :customers (of a district), :items.

create table warehouse (w_id bigint, w_name text, w_address text, w_tax bigint, w_ytd bigint);
create table district (d_w_id bigint, d_id bigint, d_name text, d_address text, d_tax bigint, d_ytd bigint, d_next_o_id bigint);
create table customer (c_w_id bigint, c_d_id bigint, c_id bigint, c_first text, c_last text, c_address text, c_credit text,
    c_discount bigint, c_balance bigint, c_ytd_payment bigint, c_payment_cnt bigint, c_delivery_cnt bigint, c_data text);
create table history (h_c_id bigint, h_c_d_id bigint, h_c_w_id bigint, h_d_id bigint, h_w_id bigint, h_amount bigint, h_data text);
create table item (i_id bigint, i_name text, i_price bigint, i_data text);
create table stock (s_w_id bigint, s_i_id bigint, s_quantity bigint, s_ytd bigint, s_order_cnt bigint, s_remote_cnt bigint,
    s_dist text, s_data text);
create table orders (o_w_id bigint, o_d_id bigint, o_id bigint, o_c_id bigint, o_carrier_id bigint, o_ol_cnt bigint,
    o_all_local bigint);
create table new_order (no_w_id bigint, no_d_id bigint, no_o_id bigint);
create table order_line (ol_w_id bigint, ol_d_id bigint, ol_o_id bigint, ol_number bigint, ol_i_id bigint, ol_supply_w_id bigint,
    ol_delivered bigint, ol_quantity bigint, ol_amount bigint, ol_dist_info text);

create function letters(seed bigint, length int) returns text immutable language sql as
    $$ select left(repeat(upper(md5(seed::text)), length / 32 + 1), length) $$;
create function last_name(number bigint) returns text immutable language sql as $$
    select s[number / 100 % 10 + 1] || s[number / 10 % 10 + 1] || s[number % 10 + 1]
    from (select array['BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING']) as t(s) $$;
create function uniform(low bigint, high bigint) returns bigint volatile language sql as
    $$ select low + floor(random() * (high - low + 1))::bigint $$;
create function skewed(a bigint, low bigint, high bigint) returns bigint volatile language sql as
    $$ select ((floor(random() * (a + 1))::bigint | (low + floor(random() * (high - low + 1))::bigint)) + 42) % (high - low + 1) + low $$;
create function other_warehouse(w bigint, warehouses bigint) returns bigint volatile language sql as
    $$ select case when warehouses = 1 then w else (w + floor(random() * (warehouses - 1))::bigint) % warehouses + 1 end $$;

insert into item select i, letters(i, 20), uniform(100, 10000), letters(i, 38) from generate_series(1, :items) i;
insert into warehouse select w, letters(w, 10), letters(w, 60), uniform(0, 2000), 30000000 from generate_series(1, :warehouses) w;
insert into district select w, d, letters(d, 10), letters(d, 60), uniform(0, 2000), 3000000, :customers + 1
    from generate_series(1, :warehouses) w, generate_series(1, 10) d;
insert into stock select w, i, uniform(10, 100), 0, 0, 0, letters(i + w, 240), letters(i, 38)
    from generate_series(1, :warehouses) w, generate_series(1, :items) i;
insert into customer select w, d, c, letters(c + d, 12), last_name(case when c <= 1000 then c - 1 else uniform(0, 999) end),
    letters(c, 80), case when random() < 0.1 then 'BC' else 'GC' end, uniform(0, 5000), -1000, 1000, 1, 0, letters(c + w, 400)
    from generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) c;
insert into orders select w, d, o, o * 7919 % :customers + 1, case when o <= :customers * 7 / 10 then 1 + o % 10 end,
    5 + (o * 31 + d) % 11, 1
    from generate_series(1, :warehouses) w, generate_series(1, 10) d, generate_series(1, :customers) o;
insert into order_line select o_w_id, o_d_id, o_id, n, uniform(1, :items), o_w_id, (o_carrier_id is not null)::int, 5, 0,
    letters(o_id, 24) from orders, generate_series(1, o_ol_cnt) n;
insert into new_order select o_w_id, o_d_id, o_id from orders where o_carrier_id is null;

create unique index warehouse_pk on warehouse (w_id);
create unique index district_pk on district (d_w_id, d_id);
create unique index customer_pk on customer (c_w_id, c_d_id, c_id);
create unique index item_pk on item (i_id);
create unique index stock_pk on stock (s_w_id, s_i_id);
create unique index orders_pk on orders (o_w_id, o_d_id, o_id);
create unique index new_order_pk on new_order (no_w_id, no_d_id, no_o_id);
create unique index order_line_pk on order_line (ol_w_id, ol_d_id, ol_o_id, ol_number);
create index customer_by_name on customer (c_w_id, c_d_id, c_last, c_first);
create index orders_by_customer on orders (o_w_id, o_d_id, o_c_id, o_id);

-- One in a hundred meets an item that does not exist, and is rolled back.
create procedure new_order(w bigint, warehouses bigint, customers bigint, items bigint) language plpgsql as $$
declare
    d bigint := uniform(1, 10);
    lines int := uniform(5, 15);
    wrong boolean := random() < 0.01;
    c bigint := skewed_customer(customers);
    o bigint; price bigint; dist text; line record;
    numbers bigint[] := '{}'; chosen bigint[] := '{}'; suppliers bigint[] := '{}'; quantities bigint[] := '{}';
    amounts bigint[] := '{}'; infos text[] := '{}'; line_number bigint := 0;
begin
    perform w_tax from warehouse where w_id = w;
    perform c_discount, c_last, c_credit from customer where c_w_id = w and c_d_id = d and c_id = c;
    update district set d_next_o_id = d_next_o_id + 1 where d_w_id = w and d_id = d returning d_next_o_id - 1 into o;
    insert into orders values (w, d, o, c, null, lines, 1);
    insert into new_order values (w, d, o);
    -- In one order for all sessions: two orders never wait for each other's stock in a circle.
    for line in
        select case when random() < 0.01 then other_warehouse(w, warehouses) else w end as supplier,
            skewed(least(8191, items), 1, items) as item, uniform(1, 10) as quantity
        from generate_series(1, lines) order by 1, 2
    loop
        line_number := line_number + 1;
        select i_price into price from item where i_id = line.item;
        update stock set
            s_quantity = case when s_quantity - line.quantity >= 10 then s_quantity - line.quantity else s_quantity - line.quantity + 91 end,
            s_ytd = s_ytd + line.quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (line.supplier <> w)::int
            where s_w_id = line.supplier and s_i_id = line.item returning left(s_dist, 24) into dist;
        numbers := numbers || line_number; chosen := chosen || line.item; suppliers := suppliers || line.supplier;
        quantities := quantities || line.quantity; amounts := amounts || line.quantity * price; infos := infos || dist;
    end loop;
    if wrong then
        perform i_price from item where i_id = items + 1;
        rollback;
        return;
    end if;
    insert into order_line select w, d, o, n, i, s, 0, q, a, t
        from unnest(numbers, chosen, suppliers, quantities, amounts, infos) as u(n, i, s, q, a, t);
end $$;

create function skewed_customer(customers bigint) returns bigint volatile language sql as
    $$ select ((floor(random() * (least(1023, customers) + 1))::bigint | (1 + floor(random() * customers)::bigint)) + 42) % customers + 1 $$;

-- By number, or (60 %) the middle one of a last name.
create function find_customer(w bigint, d bigint, customers bigint) returns bigint volatile language plpgsql as $$
declare
    names bigint := least(customers, 1000);
    last text; middle bigint;
begin
    if random() >= 0.6 then
        return skewed_customer(customers);
    end if;
    last := last_name(skewed(least(255, names), 0, names - 1));
    select named.c_id into middle from (
        select c_id, row_number() over (order by c_first) as place, count(*) over () as many
        from customer where c_w_id = w and c_d_id = d and c_last = last) as named
        where place = many / 2 + 1;
    return middle;
end $$;

create procedure payment(w bigint, warehouses bigint, customers bigint) language plpgsql as $$
declare
    d bigint := uniform(1, 10);
    amount bigint := uniform(100, 500000);
    c_w bigint := w; c_d bigint := d; c bigint;
begin
    if warehouses > 1 and random() < 0.15 then
        c_w := other_warehouse(w, warehouses);
        c_d := uniform(1, 10);
    end if;
    c := find_customer(c_w, c_d, customers);
    update warehouse set w_ytd = w_ytd + amount where w_id = w;
    update district set d_ytd = d_ytd + amount where d_w_id = w and d_id = d;
    update customer set c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = case when c_credit = 'BC'
            then left(concat_ws(' ', c, c_d, c_w, d, w, amount, '|', c_data), 500) else c_data end
        where c_w_id = c_w and c_d_id = c_d and c_id = c;
    insert into history values (c, c_d, c_w, d, w, amount, letters(amount, 20));
end $$;

create procedure order_status(w bigint, customers bigint) language plpgsql as $$
declare
    d bigint := uniform(1, 10);
    c bigint := find_customer(w, d, customers);
    o bigint; line record;
begin
    perform c_balance, c_first, c_last from customer where c_w_id = w and c_d_id = d and c_id = c;
    select o_id into o from orders where o_w_id = w and o_d_id = d and o_c_id = c order by o_id desc limit 1;
    for line in select * from order_line where ol_w_id = w and ol_d_id = d and ol_o_id = o loop
    end loop;
end $$;

create procedure delivery(w bigint) language plpgsql as $$
declare
    carrier bigint := uniform(1, 10);
    o bigint; c bigint; total bigint;
begin
    for d in 1..10 loop
        delete from new_order where ctid = (
            select ctid from new_order where no_w_id = w and no_d_id = d order by no_o_id limit 1 for update skip locked)
            returning no_o_id into o;
        continue when o is null;
        update orders set o_carrier_id = carrier where o_w_id = w and o_d_id = d and o_id = o returning o_c_id into c;
        with changed as (
            update order_line set ol_delivered = 1 where ol_w_id = w and ol_d_id = d and ol_o_id = o returning ol_amount)
            select coalesce(sum(ol_amount), 0) into total from changed;
        update customer set c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
            where c_w_id = w and c_d_id = d and c_id = c;
    end loop;
end $$;

create procedure stock_level(w bigint) language plpgsql as $$
declare
    d bigint := uniform(1, 10);
    threshold bigint := uniform(10, 20);
    following bigint;
begin
    select d_next_o_id into following from district where d_w_id = w and d_id = d;
    perform count(*) from (
        select distinct ol_i_id from order_line where ol_w_id = w and ol_d_id = d and ol_o_id >= following - 20 and ol_o_id < following) as sold
        join stock on s_w_id = w and s_i_id = ol_i_id where s_quantity < threshold;
end $$;
