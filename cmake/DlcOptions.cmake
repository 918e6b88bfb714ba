# Settings that every target shares, whether the whole project or the runtime alone is configured.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Modules opened on demand; programs find them as ../lib relative to themselves.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

set(DLC_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize=")
option(DLC_PARALLEL_STD_THREAD "Build ParallelFor on std::thread (libgomp looks racy to TSan)" OFF)

get_filename_component(DLC_SOURCE_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  string(REGEX MATCH "^[0-9]+" DLC_CLANG_MAJOR ${CMAKE_CXX_COMPILER_VERSION})
  find_program(DLC_LLD NAMES ld.lld-${DLC_CLANG_MAJOR} ld.lld)
  if(DLC_LLD)
    add_link_options(--ld-path=${DLC_LLD})
  endif()
endif()

# One cache serves all build directories and work trees: paths below the source tree are hashed
# relative to it. The sloppiness is what ccache asks for with precompiled headers.
find_program(DLC_CCACHE ccache)
if(DLC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(DLC_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${DLC_SOURCE_ROOT} CCACHE_NOHASHDIR=1
                   CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${DLC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${DLC_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DLC_LAUNCHER})
endif()

if(DLC_SANITIZE)
  add_compile_options(-fsanitize=${DLC_SANITIZE} -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DLC_SANITIZE})
endif()
