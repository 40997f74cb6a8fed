# idem_generate(TARGET t PROTOS a.proto … [IMPORT_DIRS d …])
