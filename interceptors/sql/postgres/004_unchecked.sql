-- What a record's columns have to do with one another is the statements' to
-- keep. Checking it again at each row was a tenth of what a call cost; the
-- tests put the checks back.
ALTER TABLE idem_record
    DROP CONSTRAINT idem_record_state_check,
    DROP CONSTRAINT idem_record_token_check,
    DROP CONSTRAINT idem_record_check,
    DROP CONSTRAINT idem_record_check1,
    DROP CONSTRAINT idem_record_check2;
ALTER TABLE idem_record_opaque
    DROP CONSTRAINT idem_record_state_check,
    DROP CONSTRAINT idem_record_token_check,
    DROP CONSTRAINT idem_record_check,
    DROP CONSTRAINT idem_record_check1,
    DROP CONSTRAINT idem_record_check2;
