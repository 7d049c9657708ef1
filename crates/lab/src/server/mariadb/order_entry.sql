-- Order entry for MariaDB: the tables, keys and first rows of `lab::database::order_entry`, as many and as wide; then its five
-- transactions as procedures. A line `;;` ends a statement. Variables: :warehouses, :customers (of a district), :items.

create table warehouse (w_id bigint primary key, w_name varchar(20), w_address varchar(80), w_tax bigint, w_ytd bigint)
;;
create table district (d_w_id bigint, d_id bigint, d_name varchar(20), d_address varchar(80), d_tax bigint, d_ytd bigint,
    d_next_o_id bigint, primary key (d_w_id, d_id))
;;
create table customer (c_w_id bigint, c_d_id bigint, c_id bigint, c_first varchar(20), c_last varchar(20), c_address varchar(80),
    c_credit varchar(2), c_discount bigint, c_balance bigint, c_ytd_payment bigint, c_payment_cnt bigint, c_delivery_cnt bigint,
    c_data varchar(500), primary key (c_w_id, c_d_id, c_id))
;;
create table history (h_c_id bigint, h_c_d_id bigint, h_c_w_id bigint, h_d_id bigint, h_w_id bigint, h_amount bigint, h_data varchar(24))
;;
create table item (i_id bigint primary key, i_name varchar(24), i_price bigint, i_data varchar(50))
;;
create table stock (s_w_id bigint, s_i_id bigint, s_quantity bigint, s_ytd bigint, s_order_cnt bigint, s_remote_cnt bigint,
    s_dist varchar(240), s_data varchar(50), primary key (s_w_id, s_i_id))
;;
create table orders (o_w_id bigint, o_d_id bigint, o_id bigint, o_c_id bigint, o_carrier_id bigint, o_ol_cnt bigint,
    o_all_local bigint, primary key (o_w_id, o_d_id, o_id))
;;
create table new_order (no_w_id bigint, no_d_id bigint, no_o_id bigint, primary key (no_w_id, no_d_id, no_o_id))
;;
create table order_line (ol_w_id bigint, ol_d_id bigint, ol_o_id bigint, ol_number bigint, ol_i_id bigint, ol_supply_w_id bigint,
    ol_delivered bigint, ol_quantity bigint, ol_amount bigint, ol_dist_info varchar(24),
    primary key (ol_w_id, ol_d_id, ol_o_id, ol_number))
;;
create function letters(seed bigint, length int) returns varchar(500) deterministic no sql
    return left(repeat(upper(md5(seed)), length div 32 + 1), length)
;;
create function last_name(number bigint) returns varchar(20) deterministic no sql
    return concat(
        elt(number div 100 mod 10 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'),
        elt(number div 10 mod 10 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'),
        elt(number mod 10 + 1, 'BAR','OUGHT','ABLE','PRI','PRES','ESE','ANTI','CALLY','ATION','EING'))
;;
create function uniform(low bigint, high bigint) returns bigint not deterministic no sql
    return low + floor(rand() * (high - low + 1))
;;
create function skewed(a bigint, low bigint, high bigint) returns bigint not deterministic no sql
    return ((uniform(0, a) | uniform(low, high)) + 42) mod (high - low + 1) + low
;;
create function other_warehouse(w bigint, warehouses bigint) returns bigint not deterministic no sql
    return case when warehouses = 1 then w else (w + floor(rand() * (warehouses - 1))) mod warehouses + 1 end
;;
insert into item select seq, left(upper(md5(seq)), 20), 100 + floor(rand() * 9901), left(repeat(upper(md5(seq)), 2), 38)
    from seq_1_to_:items
;;
insert into warehouse select seq, left(upper(md5(seq)), 10), left(repeat(upper(md5(seq)), 2), 60), floor(rand() * 2001), 30000000
    from seq_1_to_:warehouses
;;
insert into district select w.seq, d.seq, left(upper(md5(d.seq)), 10), left(repeat(upper(md5(d.seq)), 2), 60), floor(rand() * 2001),
    3000000, :customers + 1 from seq_1_to_:warehouses w, seq_1_to_10 d
;;
insert into stock select w.seq, i.seq, 10 + floor(rand() * 91), 0, 0, 0, left(repeat(upper(md5(i.seq + w.seq)), 8), 240),
    left(repeat(upper(md5(i.seq)), 2), 38) from seq_1_to_:warehouses w straight_join seq_1_to_:items i
;;
insert into customer select w.seq, d.seq, c.seq, left(upper(md5(c.seq + d.seq)), 12),
    last_name(case when c.seq <= 1000 then c.seq - 1 else floor(rand() * 1000) end), left(repeat(upper(md5(c.seq)), 3), 80),
    case when rand() < 0.1 then 'BC' else 'GC' end, floor(rand() * 5001), -1000, 1000, 1, 0,
    left(repeat(upper(md5(c.seq + w.seq)), 13), 400)
    from seq_1_to_:warehouses w straight_join seq_1_to_10 d straight_join seq_1_to_:customers c
;;
insert into orders select w.seq, d.seq, o.seq, o.seq * 7919 mod :customers + 1,
    case when o.seq <= :customers * 7 div 10 then 1 + o.seq mod 10 end, 5 + (o.seq * 31 + d.seq) mod 11, 1
    from seq_1_to_:warehouses w straight_join seq_1_to_10 d straight_join seq_1_to_:customers o
;;
insert into order_line select o_w_id, o_d_id, o_id, n.seq, 1 + floor(rand() * :items), o_w_id, o_carrier_id is not null, 5, 0,
    left(upper(md5(o_id)), 24) from orders straight_join seq_1_to_15 n where n.seq <= o_ol_cnt
;;
insert into new_order select o_w_id, o_d_id, o_id from orders where o_carrier_id is null
;;
create index customer_by_name on customer (c_w_id, c_d_id, c_last, c_first)
;;
create index orders_by_customer on orders (o_w_id, o_d_id, o_c_id, o_id)
;;
create function find_customer(w bigint, d bigint, customers bigint) returns bigint not deterministic reads sql data
begin
    declare names bigint default least(customers, 1000);
    declare family varchar(20);
    declare half int;
    declare middle bigint;
    if rand() >= 0.6 then
        return skewed(least(1023, customers), 1, customers);
    end if;
    set family = last_name(skewed(least(255, names), 0, names - 1));
    select count(*) div 2 into half from customer where c_w_id = w and c_d_id = d and c_last = family;
    select c_id into middle from customer where c_w_id = w and c_d_id = d and c_last = family order by c_first limit half, 1;
    return middle;
end
;;
create procedure new_order(w bigint, warehouses bigint, customers bigint, items bigint)
begin
    declare d bigint default uniform(1, 10);
    declare many int default uniform(5, 15);
    declare wrong boolean default rand() < 0.01;
    declare c bigint default skewed(least(1023, customers), 1, customers);
    declare o, price, supplier, chosen, quantity bigint;
    declare n int default 0;
    declare dist varchar(24);
    -- In one order for all sessions: two orders seldom wait for each other's stock in a circle.
    declare wanted cursor for select * from (
        select case when rand() < 0.01 then other_warehouse(w, warehouses) else w end as s,
            skewed(least(8191, items), 1, items) as i, uniform(1, 10) as q
        from seq_1_to_15 where seq <= many limit 15) as drawn order by s, i;
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    do (select w_tax from warehouse where w_id = w);
    do (select c_last from customer where c_w_id = w and c_d_id = d and c_id = c);
    select d_next_o_id into o from district where d_w_id = w and d_id = d for update;
    update district set d_next_o_id = o + 1 where d_w_id = w and d_id = d;
    insert into orders values (w, d, o, c, null, many, 1);
    insert into new_order values (w, d, o);
    open wanted;
    while n < many do
        set n = n + 1;
        fetch wanted into supplier, chosen, quantity;
        select i_price into price from item where i_id = chosen;
        select left(s_dist, 24) into dist from stock where s_w_id = supplier and s_i_id = chosen for update;
        update stock set
            s_quantity = case when s_quantity - quantity >= 10 then s_quantity - quantity else s_quantity - quantity + 91 end,
            s_ytd = s_ytd + quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (supplier <> w)
            where s_w_id = supplier and s_i_id = chosen;
        insert into order_line values (w, d, o, n, chosen, supplier, 0, quantity, quantity * price, dist);
    end while;
    close wanted;
    if wrong then
        do (select i_price from item where i_id = items + 1);
        rollback;
    else
        commit;
    end if;
end
;;
create procedure payment(w bigint, warehouses bigint, customers bigint)
begin
    declare d bigint default uniform(1, 10);
    declare amount bigint default uniform(100, 500000);
    declare c_w bigint default w;
    declare c_d bigint default d;
    declare c bigint;
    declare exit handler for sqlexception begin rollback; resignal; end;
    if warehouses > 1 and rand() < 0.15 then
        set c_w = other_warehouse(w, warehouses);
        set c_d = uniform(1, 10);
    end if;
    start transaction;
    set c = find_customer(c_w, c_d, customers);
    update warehouse set w_ytd = w_ytd + amount where w_id = w;
    update district set d_ytd = d_ytd + amount where d_w_id = w and d_id = d;
    update customer set c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = case when c_credit = 'BC'
            then left(concat_ws(' ', c, c_d, c_w, d, w, amount, '|', c_data), 500) else c_data end
        where c_w_id = c_w and c_d_id = c_d and c_id = c;
    insert into history values (c, c_d, c_w, d, w, amount, letters(amount, 20));
    commit;
end
;;
create procedure order_status(w bigint, customers bigint)
begin
    declare d bigint default uniform(1, 10);
    declare c, o, seen bigint;
    start transaction;
    set c = find_customer(w, d, customers);
    do (select c_last from customer where c_w_id = w and c_d_id = d and c_id = c);
    select max(o_id) into o from orders where o_w_id = w and o_d_id = d and o_c_id = c;
    select sum(ol_quantity) into seen from order_line where ol_w_id = w and ol_d_id = d and ol_o_id = o;
    commit;
end
;;
create procedure delivery(w bigint)
begin
    declare carrier bigint default uniform(1, 10);
    declare d bigint default 1;
    declare o, c, total bigint;
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    while d <= 10 do
        set o = (select no_o_id from new_order where no_w_id = w and no_d_id = d order by no_o_id limit 1 for update);
        if o is not null then
            delete from new_order where no_w_id = w and no_d_id = d and no_o_id = o;
            select o_c_id into c from orders where o_w_id = w and o_d_id = d and o_id = o for update;
            update orders set o_carrier_id = carrier where o_w_id = w and o_d_id = d and o_id = o;
            select coalesce(sum(ol_amount), 0) into total from order_line where ol_w_id = w and ol_d_id = d and ol_o_id = o;
            update order_line set ol_delivered = 1 where ol_w_id = w and ol_d_id = d and ol_o_id = o;
            update customer set c_balance = c_balance + total, c_delivery_cnt = c_delivery_cnt + 1
                where c_w_id = w and c_d_id = d and c_id = c;
        end if;
        set d = d + 1;
    end while;
    commit;
end
;;
create procedure stock_level(w bigint)
begin
    declare d bigint default uniform(1, 10);
    declare threshold bigint default uniform(10, 20);
    declare following, low bigint;
    start transaction;
    select d_next_o_id into following from district where d_w_id = w and d_id = d;
    select count(*) into low from (
        select distinct ol_i_id from order_line where ol_w_id = w and ol_d_id = d and ol_o_id >= following - 20 and ol_o_id < following) as sold
        join stock on s_w_id = w and s_i_id = ol_i_id where s_quantity < threshold;
    commit;
end
