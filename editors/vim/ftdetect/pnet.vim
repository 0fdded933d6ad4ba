autocmd BufNewFile,BufRead *.pnet setfiletype pnet
