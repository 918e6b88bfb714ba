# One precompiled header of MLIR's for all compiler code: a small pass compiles in 1.5 s instead of 6.
include_guard(GLOBAL)

option(DLC_PCH "Precompile MLIR's headers" ON)
set(DLC_PCH_FILE ${CMAKE_BINARY_DIR}/CMakeFiles/dlcMlirPch.dir/cmake_pch.hxx.pch)

# dlc_define_pch(): the target dlcMlirPch.
function(dlc_define_pch)
  if(NOT DLC_PCH OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/pch/MlirPch.cpp "")
  add_library(dlcMlirPch OBJECT ${CMAKE_BINARY_DIR}/pch/MlirPch.cpp)
  target_link_libraries(dlcMlirPch PRIVATE dlcMlirOptions)
  target_compile_options(dlcMlirPch PRIVATE -fno-exceptions -Xclang -fno-pch-timestamp)
  target_precompile_headers(dlcMlirPch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/MlirPch.h)
  # The header itself is not cached: it holds absolute paths of the tree that made it. For the same
  # reason ccache takes its identity from this sum (of what went into it), so that objects are shared
  # between trees.
  set_target_properties(dlcMlirPch PROPERTIES CXX_COMPILER_LAUNCHER "")
  file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/MlirPch.h sum)
  file(WRITE ${DLC_PCH_FILE}.sum
       "${sum} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_CXX_FLAGS}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/MlirPch.h)
endfunction()

# dlc_use_pch(NAME): target_precompile_headers(REUSE_FROM) by hand, since that also passes the header's
# absolute path in a form that ccache does not make relative. -fPIC for programs too: the language
# options must be those of the precompiled header.
function(dlc_use_pch NAME)
  target_compile_options(${NAME} PRIVATE "SHELL:-Xclang -include-pch -Xclang ${DLC_PCH_FILE}"
                                         "SHELL:-Xclang -fno-pch-timestamp" -fPIC)
  add_dependencies(${NAME} dlcMlirPch)
  get_target_property(sources ${NAME} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${DLC_PCH_FILE})
endfunction()
