# Every third-party library, found once, under one name each.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto SSL)
find_package(nng 1.5.2 REQUIRED)

pkg_check_modules(cmocka REQUIRED IMPORTED_TARGET cmocka>=1.1.5)
pkg_check_modules(protobuf-c REQUIRED IMPORTED_TARGET libprotobuf-c>=1.4.1)
pkg_check_modules(libevent REQUIRED IMPORTED_TARGET libevent>=2.1) # examples
pkg_check_modules(hiredis REQUIRED IMPORTED_TARGET hiredis>=0.14)
pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson>=2.10)
pkg_check_modules(libjwt REQUIRED IMPORTED_TARGET libjwt>=1.10)
pkg_check_modules(libpq REQUIRED IMPORTED_TARGET libpq>=14)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib>=1.2.11)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd>=1.5)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3>=3.35)

find_program(PROTOC protoc REQUIRED)
find_program(PROTOC_C protoc-c REQUIRED)
